package cmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/waymark-dns/waymark/internal/config"
)

// CheckCmd reads a configuration, tells everything that is wrong with it, and
// changes nothing.
type CheckCmd struct {
	Config string `short:"c" xor:"file" placeholder:"FILE" help:"Configuration file to check."`
	File   string `arg:"" optional:"" xor:"file" help:"The same, without -c."`

	Dir     string `short:"d" placeholder:"DIR" help:"Working directory to change to first."`
	Explain bool   `help:"Print the configuration as the programs that it compiles to, in the notation of plugins."`
}

// Run writes one line per problem to stdout, "file:line:column: text (mend)",
// and returns ErrSilent; without a problem it writes one line that says so, or with
// Explain the programs.
func (c *CheckCmd) Run(stdout io.Writer) error {
	path := cmp.Or(c.Config, c.File)
	if path == "" {
		return errors.New("reading the command line: nothing to check: give -c FILE")
	}
	if err := enter(c.Dir); err != nil {
		return err
	}
	p, problems, err := config.Load(path)
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
	if c.Explain {
		_, err = io.WriteString(stdout, config.Explain(p))
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: no problems\n", path)
	return err
}

// enter changes the working directory; empty stays.
func enter(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.Chdir(dir); err != nil {
		return fmt.Errorf("changing the working directory: %w", err)
	}
	return nil
}
