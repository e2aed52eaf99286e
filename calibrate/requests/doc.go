// Package requests fits a fleet's constants to measured requests, by simulating
// them: arrivals, prompts and answers are the trace's, and the constants are
// moved until the times of each request agree.
//
// What can be told apart depends on the traces. A constant that they do not
// move, or move only together with another, keeps its value from the base fleet
// and is marked so, with the run that would tell.
package requests
