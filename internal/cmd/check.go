package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/waymark-dns/waymark/internal/config"
)

// CheckCmd reads a configuration, tells everything that is wrong with it, and
// changes nothing.
type CheckCmd struct {
	Config string `short:"c" xor:"file" placeholder:"FILE" help:"Configuration file to check."`
	File   string `arg:"" optional:"" xor:"file" help:"The same, without -c."`
}

// Run writes one line per problem to stdout, "file:line:column: text (mend)",
// and returns ErrSilent; without a problem it writes one line that says so.
func (c *CheckCmd) Run(stdout io.Writer) error {
	path := cmp.Or(c.Config, c.File)
	if path == "" {
		return errors.New("reading the command line: nothing to check: give -c FILE")
	}
	_, problems, err := config.Load(path)
	if err != nil {
		return err
	}
	for _, problem := range problems {
		if _, err := fmt.Fprintln(stdout, problem.Error()); err != nil {
			return fmt.Errorf("writing problems: %w", err)
		}
	}
	if len(problems) > 0 {
		return ErrSilent
	}
	_, err = fmt.Fprintf(stdout, "%s: no problems\n", path)
	return err
}
