// Package steps fits the step-time model of sim/latency to an engine's step log:
// how long each step kept the GPU busy, and what was in it.
//
// Read takes the pooled medians of a traced engine or a step log of our own. Fit
// finds the dense and attention terms of steps that prefill, and for steps that
// only decode the captured batch sizes, their times and their cost per token of
// context, with intervals, and judges them on shapes held out.
//
// It returns times as the log has them: whoever knows that tracing inflated them
// scales them. What a log of busy times cannot hold (the host's share, the launch
// of a cold start, what a mixed step costs beyond its kernels) keeps the base
// file's value, and terms that the steps never move apart are refused by name,
// with the run that would part them.
package steps
