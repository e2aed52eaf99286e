// Package judge says how far a simulation is from measured requests, request by
// request and as distributions, beside how far two runs of one workload are from
// each other.
//
// Means of ratios and ratios of means are kept apart: MAPE is the mean over
// requests of |simulated/measured - 1|, of those with a measured time above 0; an
// error of a mean is mean(simulated) / mean(measured) - 1. The time per output token
// is over the n-1 gaps of each request; the median gap of a request and the pooled
// gaps are other things and have other names.
package judge
