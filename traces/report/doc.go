// Package report turns the cells of a sweep into what a person looks at: the
// pressure map of two policies, the regime map, goodput against working set,
// and the judgement of simulated cells against measured ones.
//
// It reads nothing but a table of cells and computes nothing a cell does not
// hold. Repetitions become a median with the range beside it; where two ranges
// overlap the difference is called "within spread", which is not a result. It
// refuses to put cells of different drivers or loads into one comparison, to
// guess which of several variants of a policy was meant, to leave out a point
// silently because one side of it is missing, and to call a lead won where a policy
// of the sweep has no cell or a side was run only once.
//
// The same cells give the same bytes, in whatever order their rows came.
package report
