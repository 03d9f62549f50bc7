// Einstein summation: diagonals and sums of one tensor, and products, each reduced to one matmul.
#include <algorithm>

#include "ops/ops.h"
#include "ops/told_as.h"

namespace reel {

namespace {

/// A tensor with a letter for each axis.
struct Term {
  std::string letters;
  Tensor x;

  bool has(char c) const { return letters.find(c) != std::string::npos; }
  int axis(char c) const { return static_cast<int>(letters.find(c)); }
};

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

/// Is it one of the axes that "..." stands for? Those are digits.
bool is_ellipsis(char c) { return c >= '0' && c <= '9'; }
std::string quoted(char c) { return is_ellipsis(c) ? "an axis of \"...\"" : fmt::format("'{}'", c); }

/// Replaces "..." by `digits`; false if there is none.
bool replace_ellipsis(std::string& letters, const std::string& digits) {
  const std::size_t at = letters.find("...");
  if (at != std::string::npos) letters.replace(at, 3, digits);
  return at != std::string::npos;
}

/// Replaces "..." in each input by a digit for each axis that has no letter, aligned at the last one, and returns those
/// of the longest.
std::string name_ellipses(std::vector<std::string>& inputs, const Tensors& xs, const std::string& text) {
  std::vector<std::int64_t> axes(inputs.size(), 0);  // that "..." stands for
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto letters = static_cast<std::int64_t>(inputs[i].size());
    const bool any = inputs[i].find("...") != std::string::npos;
    axes[i] = xs[i].rank() - (any ? letters - 3 : letters);
    const std::int64_t named = any ? letters - 3 : letters;
    if (any ? axes[i] < 0 : axes[i] != 0)
      rule_error("\"{}\" in \"{}\" names {} ax{}s, the tensor has {}", inputs[i], text, named, named == 1 ? "i" : "e",
                 xs[i].rank());
  }
  const std::string digits = std::string("01234567").substr(0, static_cast<std::size_t>(std::ranges::max(axes)));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    replace_ellipsis(inputs[i], digits.substr(digits.size() - static_cast<std::size_t>(axes[i])));
  return digits;
}

/// Parses "ij, jk -> ik" for these tensors. Without "->" the output has the axes of "...", and the letters that occur
/// once, in alphabetical order.
Equation parse(const std::string& text, const Tensors& xs) {
  std::string dense;
  for (char c : text) {
    if (c != ' ') dense += c;
  }
  const std::size_t arrow = dense.find("->");
  Equation e{{""}, arrow == std::string::npos ? "" : dense.substr(arrow + 2)};
  for (char c : dense.substr(0, arrow)) {
    if (c == ',')
      e.inputs.emplace_back();
    else
      e.inputs.back() += c;
  }
  std::string all = e.output;
  replace_ellipsis(all, "");
  for (std::string letters : e.inputs) {
    replace_ellipsis(letters, "");
    all += letters;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((all[i] >= 'a' && all[i] <= 'z') || (all[i] >= 'A' && all[i] <= 'Z')) continue;
    std::size_t end = i + 1;  // of the character, which has more bytes in UTF-8
    while (end < all.size() && (all[end] & 0xC0) == 0x80) ++end;
    rule_error("axes are named by letters, got '{}' in \"{}\"", all.substr(i, end - i), text);
  }
  if (e.inputs.size() != xs.size())
    rule_error("\"{}\" names {} tensor{}, got {}", text, e.inputs.size(), e.inputs.size() == 1 ? "" : "s", xs.size());
  const std::string ellipsis = name_ellipses(e.inputs, xs, text);
  if (arrow == std::string::npos) {
    for (char c : all) {
      if (std::count(all.begin(), all.end(), c) == 1) e.output += c;
    }
    std::sort(e.output.begin(), e.output.end());
    e.output = ellipsis + e.output;
  } else if (!replace_ellipsis(e.output, ellipsis) && !ellipsis.empty()) {
    rule_error("\"...\" stands for axes in \"{}\", so the output needs it, too", text);
  }
  for (char c : e.output) {
    if (std::count(e.output.begin(), e.output.end(), c) > 1)
      rule_error("'{}' is twice in the output of \"{}\"", c, text);
    const auto has = [c](const std::string& letters) { return letters.find(c) != std::string::npos; };
    if (std::none_of(e.inputs.begin(), e.inputs.end(), has))
      rule_error("'{}' is in the output of \"{}\" but in no input", c, text);
  }
  return e;
}

/// The extent of a letter over all terms; extents of 1 broadcast.
std::int64_t extent(const std::vector<Term>& terms, char c) {
  std::int64_t n = 1;
  for (const Term& t : terms) {
    for (std::size_t i = 0; i < t.letters.size(); ++i) {
      const std::int64_t own = t.x.dim(static_cast<int>(i));
      if (t.letters[i] != c || own == 1 || own == n) continue;
      if (n != 1) rule_error("{} stands for extents {} and {}", quoted(c), n, own);
      n = own;
    }
  }
  return n;
}

void drop_axis(Term& t, int axis) {
  t.x = squeeze(t.x, {axis});
  t.letters.erase(static_cast<std::size_t>(axis), 1);
}

/// Makes letters unique: a repeated letter becomes the diagonal. Drops axes that broadcast, as the product broadcasts
/// anyway.
void simplify(Term& t, const std::vector<Term>& all) {
  std::string letters = t.letters;
  std::sort(letters.begin(), letters.end());
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  for (char c : letters) {
    const std::int64_t n = extent(all, c), own = t.x.dim(t.axis(c));
    for (int i = 0; i < t.x.rank(); ++i) {
      if (t.letters[static_cast<std::size_t>(i)] == c && t.x.dim(i) != own)
        rule_error("'{}' is twice in one term, where it stands for extents {} and {}", c, own, t.x.dim(i));
    }
    for (int i = t.x.rank(); i-- > 0;) {
      if (t.letters[static_cast<std::size_t>(i)] == c && t.x.dim(i) == 1 && n != 1) drop_axis(t, i);
    }
    while (std::count(t.letters.begin(), t.letters.end(), c) > 1) {
      const int first = t.axis(c), second = static_cast<int>(t.letters.find(c, t.letters.find(c) + 1));
      t.x = diag(movedim(movedim(t.x, second, -1), first, -2));
      t.letters.erase(static_cast<std::size_t>(second), 1);
      t.letters.erase(static_cast<std::size_t>(first), 1);
      t.letters += c;
    }
  }
}

/// Sums over the axes whose letters are not in `needed`.
void sum_out(Term& t, const std::string& needed) {
  Axes gone;
  std::string left;
  for (std::size_t i = 0; i < t.letters.size(); ++i) {
    if (needed.find(t.letters[i]) == std::string::npos)
      gone.push_back(static_cast<std::int64_t>(i));
    else
      left += t.letters[i];
  }
  if (gone.empty()) return;
  t.x = sum(t.x, gone);
  t.letters = left;
}

/// The axes in the order of `letters`.
Tensor ordered(const Term& t, const std::string& letters) {
  Axes order;
  for (char c : letters) order.push_back(t.axis(c));
  return permute(t.x, order);
}

/// The matrices [batch..., rows, columns] of a term, or their transposes, whichever copies less. The letters of the
/// batch keep an axis each, so that loops can share the first one among threads, unless they are too many.
struct Matrices {
  Tensor x;
  bool transposed;
};
Matrices matrices(const Term& t, const std::string& batch, const std::string& rows, const std::string& columns) {
  const bool transposed = t.letters == batch + columns + rows && !rows.empty() && !columns.empty();
  const Tensor x = ordered(t, transposed ? t.letters : batch + rows + columns);
  const auto merged = [&](std::size_t first, std::size_t n) {
    return x.shape().product(static_cast<int>(first), static_cast<int>(first + n));
  };
  const std::size_t above = batch.size(), middle = transposed ? columns.size() : rows.size(),
                    last = transposed ? rows.size() : columns.size();
  std::vector<std::int64_t> dims;
  const bool apart = above + 2 <= Shape::max_rank;
  for (std::size_t i = 0; i < above; i += apart ? 1 : above) dims.push_back(merged(i, apart ? 1 : above));
  dims.insert(dims.end(), {merged(above, middle), merged(above + middle, last)});
  return {reshape(x, dims), transposed};
}

/// The product of two terms, summed over the letters that both have and the output does not.
Term product(const Term& a, const Term& b, const std::string& output) {
  std::string batch, rows, columns, inner;
  for (char c : a.letters) (!b.has(c) ? rows : output.find(c) == std::string::npos ? inner : batch) += c;
  for (char c : b.letters) {
    if (!a.has(c)) columns += c;
  }
  const std::string letters = batch + rows + columns;
  if (inner.empty() || (rows.empty() && columns.empty() && !batch.empty())) {  // matmul would be slower
    const auto aligned = [&](const Term& t) {
      std::vector<std::int64_t> dims;
      std::string own;
      for (char c : letters + inner) {
        dims.push_back(t.has(c) ? t.x.dim(t.axis(c)) : 1);
        if (t.has(c)) own += c;
      }
      return reshape(ordered(t, own), dims);
    };
    Term c{letters + inner, aligned(a) * aligned(b)};
    sum_out(c, letters);
    return c;
  }
  std::vector<std::int64_t> dims;
  for (char c : letters) dims.push_back(a.has(c) ? a.x.dim(a.axis(c)) : b.x.dim(b.axis(c)));
  const Matrices x = matrices(a, batch, rows, inner), y = matrices(b, batch, inner, columns);
  const Tensor c = matmul(x.x, y.x, {.transpose_a = x.transposed, .transpose_b = y.transposed});
  return {letters, reshape(c, dims)};
}

/// The product of all terms, from the left.
Tensor einsum(const std::string& text, const Tensors& xs) {
  const Equation e = parse(text, xs);
  for (const Tensor& x : xs) {
    if (x.dtype() != xs[0].dtype())
      rule_error("all tensors must have one dtype, {} and {} differ. Hint: cast one", name_of(xs[0].dtype()),
                 name_of(x.dtype()));
  }
  std::vector<Term> given;
  for (std::size_t i = 0; i < xs.size(); ++i) given.push_back({e.inputs[i], xs[i]});
  std::vector<Term> terms = given;
  for (Term& t : terms) simplify(t, given);
  Term all;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::string later = e.output;
    for (std::size_t k = i + 1; k < terms.size(); ++k) later += terms[k].letters;
    sum_out(terms[i], later + all.letters);
    all = i == 0 ? terms[i] : product(all, terms[i], later);
  }
  return ordered(all, e.output);
}

/// Runs an einsum of these arguments, which errors show.
Tensor einsum_of(const std::string& subscripts, std::initializer_list<const Arg*> arguments) {
  need_tensors("einsum", arguments);
  const Arg& first = **arguments.begin();
  return named("einsum", first, [&] {
    return told_as("einsum", "", arguments, [&] {
      Tensors xs;
      for (const Arg* x : arguments) xs.push_back(x->tensor());
      return einsum(subscripts, xs);
    });
  });
}

}  // namespace

Tensor einsum(const std::string& subscripts, Arg a) { return einsum_of(subscripts, {&a}); }

Tensor einsum(const std::string& subscripts, Arg a, Arg b) { return einsum_of(subscripts, {&a, &b}); }

Tensor einsum(const std::string& subscripts, Arg a, Arg b, Arg c) { return einsum_of(subscripts, {&a, &b, &c}); }

Tensor einsum(const std::string& subscripts, Arg a, Arg b, Arg c, Arg d) {
  return einsum_of(subscripts, {&a, &b, &c, &d});
}

}  // namespace reel
