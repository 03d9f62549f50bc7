# Calls below the roof that memory and arithmetic allow. One thread of an AMD EPYC (Zen 4, a virtual machine of two shared,
# busy cores), GCC 12.2: explain --measure of --cell rnn --length 200 --hidden N, and of --cell lstm --length 220 --backward;
# the product of 4400 rows is from copying --cell lstm --trace-kernels. Drawn by:
# gnuplot course/images/roofline.gp > course/images/roofline.svg
set terminal svg size 640,400 font "Helvetica,Arial,sans-serif,13" background rgb "white"
set logscale xy
set xrange [0.1:100]
set yrange [1:300]
set xlabel "operations per byte"
set ylabel "Gflop/s"
set key off
set border 3
set tics nomirror
set label "memory, 28 GB/s" at 0.75,14.5 rotate by 33 tc rgb "#888888"
set label "a cache, 101 GB/s" at 0.115,16.5 rotate by 33 tc rgb "#888888"
set label "products, 115 Gflop/s" at 20,150 tc rgb "#888888"
set label "20 rows by n x n," at 3.3,36 tc rgb "#1f5f9e"
set label "n = 8, 16, ... 512" at 3.3,27 tc rgb "#1f5f9e"
set label "elementwise groups of an LSTM" at 0.75,9.5 tc rgb "#b9770e"
set label "4400 rows" at 24,75 tc rgb "#b03a2e"
roof(x, bandwidth) = bandwidth * x < 115 ? bandwidth * x : 115
$products << EOD
1.66 13.3
2.85 52
4.45 88
6.17 108
7.62 114
8.65 115
9.29 110
EOD
$groups << EOD
0.58 11.0
0.24 8.5
EOD
$large << EOD
31.5 95
EOD
plot roof(x, 28.0) with lines lw 2 lc rgb "#888888", roof(x, 101.0) with lines lw 2 dt 2 lc rgb "#888888", \
     $products with linespoints pt 7 ps 0.8 lc rgb "#1f5f9e", $groups with points pt 5 ps 0.9 lc rgb "#b9770e", \
     $large with points pt 9 ps 1.2 lc rgb "#b03a2e"
