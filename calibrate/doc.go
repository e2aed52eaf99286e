// Package calibrate makes a fleet file from measurements: engine step logs,
// captured requests, GPU telemetry and engine settings, any of them. It starts
// from a base fleet, whose numbers are kept where the measurements say nothing,
// gives every number it fits an interval and names the rows behind it, and judges
// the result on rows that were not fitted.
//
// It refuses what the data cannot say: a constant that the rows do not move, or
// move only together with another, keeps the base's value, is marked so, and the
// run that would tell it is named.
package calibrate
