// Command kvfleet simulates routing policies over fleets of LLM replicas.
//
// It parses, wires and exits; what it prints is computed in the packages it
// calls. Standard output is data, standard error is talk. It exits with 1 if
// something failed, was refused or was interrupted, and with 2 if the command
// line makes no sense.
package main
