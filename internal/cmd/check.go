package cmd

import (
	"fmt"
	"io"

	"github.com/waymark-dns/waymark/internal/config"
)

// CheckCmd reads a configuration, tells everything that is wrong with it, and
// changes nothing.
type CheckCmd struct {
	Config string `short:"c" required:"" placeholder:"FILE" help:"Configuration file to check."`
}

// Run writes one line per problem to stdout, "file:line:column: text (mend)",
// and returns ErrSilent; without a problem it writes one line that says so.
func (c *CheckCmd) Run(stdout io.Writer) error {
	_, problems, err := config.Load(c.Config)
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
	_, err = fmt.Fprintf(stdout, "%s: no problems\n", c.Config)
	return err
}
