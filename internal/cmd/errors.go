// Package cmd is the command line: one file per subcommand, each a struct that the
// parser fills and a Run that does the work. It prints for people and exits with
// a code; it serves no query itself, that is app. Only main calls it.
package cmd

import "errors"

// ErrSilent is returned by a subcommand that has already said what is wrong;
// main prints nothing for it and exits with the code of ExitCode.
var ErrSilent = errors.New("already reported")

// ExitError is an error that asks for an exit code of its own. Err is never nil;
// it is ErrSilent where nothing is left to print.
type ExitError struct {
	Code int
	Err  error
}

// Error is the text of the error inside.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap gives the error inside, for errors.Is and errors.As.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the exit code of the program for what a subcommand returned: 0 for
// nil, the code of an ExitError anywhere in the chain, else 1.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	default:
		return 1
	}
}
