// Package fit holds what every part of the calibration shares: a robust,
// bounded, damped least-squares search that works on simulators (wide
// differences, common random numbers, several starts), intervals by a bootstrap
// over blocks of rows, and the judgement whether the rows say anything about a
// parameter at all.
//
// It refuses to give an interval to a parameter that the rows do not move: see
// Solution.Judge.
package fit
