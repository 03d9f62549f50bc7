# Three steps of a loop on a GPU, as a model: no time here is measured. Drawn by:
# gnuplot course/images/launches.gp > course/images/launches.svg
set terminal svg size 640,190 font "Helvetica,Arial,sans-serif,13" background rgb "white"
unset border
unset tics
set key off
set margins 1,1,0,0
set xrange [0:420]
set yrange [0:100]
set label "kernel by kernel: three steps of three calls, and a launch before each call" at 0,93
set label "one kernel: the same calls, one launch, and a barrier at the end of each step" at 0,53
set object rect from 0,65 to 34,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 34,65 to 44,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 44,65 to 78,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 78,65 to 88,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 88,65 to 122,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 122,65 to 132,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 132,65 to 166,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 166,65 to 176,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 176,65 to 210,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 210,65 to 220,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 220,65 to 254,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 254,65 to 264,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 264,65 to 298,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 298,65 to 308,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 308,65 to 342,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 342,65 to 352,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 352,65 to 386,85 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 386,65 to 396,85 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 0,25 to 34,45 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set object rect from 34,25 to 64,45 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 64,25 to 78,45 fc rgb "#e6a59d" fs solid border lc rgb "#888888"
set object rect from 78,25 to 108,45 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 108,25 to 122,45 fc rgb "#e6a59d" fs solid border lc rgb "#888888"
set object rect from 122,25 to 152,45 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set object rect from 152,25 to 166,45 fc rgb "#e6a59d" fs solid border lc rgb "#888888"
set object rect from 0,5 to 12,13 fc rgb "#f5d9a8" fs solid border lc rgb "#888888"
set label "launch" at 16,9
set object rect from 60,5 to 72,13 fc rgb "#cfe0f1" fs solid border lc rgb "#888888"
set label "work" at 76,9
set object rect from 120,5 to 132,13 fc rgb "#e6a59d" fs solid border lc rgb "#888888"
set label "barrier" at 136,9
plot -1
