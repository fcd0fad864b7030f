package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/waymark-dns/waymark/internal/app"
	"github.com/waymark-dns/waymark/internal/config"
	"github.com/waymark-dns/waymark/internal/history"
	"github.com/waymark-dns/waymark/internal/plan"
)

// ServeCmd runs the server until SIGTERM or SIGINT; SIGHUP reloads.
type ServeCmd struct {
	Config  string   `short:"c" placeholder:"FILE" xor:"source" help:"Configuration file. What it does not name is off."`
	Dir     string   `short:"d" placeholder:"DIR" help:"Working directory to change to first; the paths of plugins start in it."`
	Listen  []string `placeholder:"URL" sep:"none" help:"Address to answer on, such as udp://127.0.0.1:5300. May be repeated. Not with -c."`
	Zone    []string `placeholder:"NAME=FILE" sep:"none" help:"Zone to serve from a master file, such as example.org=example.org.zone. May be repeated. Not with -c."`
	Forward []string `placeholder:"ADDRESS" sep:"none" help:"Server to send all other queries to, such as 9.9.9.9 or tcp://192.0.2.1:53. May be repeated. Not with -c."`
	Cache   string   `placeholder:"SIZE" help:"Memory for cached responses, such as 256MiB, or off. On with --forward, unless it says otherwise. Not with -c."`
}

// Run serves. What listens is told on stdout, the program's log goes to standard
// error or to the file that the configuration names.
func (c *ServeCmd) Run(stdout io.Writer) error {
	if err := enter(c.Dir); err != nil {
		return err
	}
	recovered, trouble := history.Recover(c.Config, time.Now)
	p, problems, err := c.plan()
	if err != nil {
		return errors.Join(trouble, err)
	}
	if err := joined(problems); err != nil {
		return errors.Join(trouble, err)
	}
	log, closeLog, err := openLog(p.Log)
	if err != nil {
		return err
	}
	defer closeLog()
	if recovered != "" {
		log.Warn(recovered)
	}
	if trouble != nil { // the server is of more use with either text than down
		log.Error("recovering the configuration failed", "error", trouble)
	}
	o := app.Options{Plan: p, Log: log, Stdout: stdout, Name: os.Args[0], Version: version()}
	if c.Config != "" {
		o.Load, o.File = c.again, c.Config
		o.Parse = func(text []byte) (*plan.Plan, []plan.Problem) { return config.Parse(c.Config, text) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	return app.Run(ctx, o, hup)
}

// plan reads the configuration, or makes one of the flags.
func (c *ServeCmd) plan() (*plan.Plan, []plan.Problem, error) {
	if c.Config != "" {
		if len(c.Listen)+len(c.Zone)+len(c.Forward)+len(c.Cache) > 0 {
			return nil, nil, errors.New("reading the command line: --listen, --zone, --forward and --cache do not go with -c; write them into the file")
		}
		return config.Load(c.Config)
	}
	if len(c.Listen) == 0 {
		return nil, nil, errors.New("reading the command line: nothing to listen on: give -c FILE, or --listen udp://127.0.0.1:5300 " +
			"with --zone example.org=FILE or --forward 9.9.9.9")
	}
	p, problems := config.FromFlags(config.Flags{Listen: c.Listen, Zones: c.Zone, Forward: c.Forward, Cache: c.Cache})
	return p, problems, nil
}

// again reads the configuration for a reload. A zone whose file is gone does not
// keep the others from it: it is told when the zones are read.
func (c *ServeCmd) again() (*plan.Plan, error) {
	p, problems, err := c.plan()
	if err != nil {
		return nil, err
	}
	return p, joined(slices.DeleteFunc(problems, func(problem plan.Problem) bool { return problem.ZoneFile }))
}

// joined is all problems as one error, one a line.
func joined(problems []plan.Problem) error {
	errs := make([]error, len(problems))
	for i, problem := range problems {
		errs[i] = problem
	}
	return errors.Join(errs...)
}

// openLog is the program's own log.
func openLog(l plan.Log) (*slog.Logger, func(), error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return nil, nil, fmt.Errorf("reading log level: %w", err)
	}
	out, closeOut := io.Writer(os.Stderr), func() {}
	if l.File != "" {
		f, err := os.OpenFile(l.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
		if err != nil {
			return nil, nil, fmt.Errorf("opening the log: %w", err)
		}
		out, closeOut = f, func() { _ = f.Close() }
	}
	opts := &slog.HandlerOptions{Level: level}
	if l.JSON {
		return slog.New(slog.NewJSONHandler(out, opts)), closeOut, nil
	}
	return slog.New(slog.NewTextHandler(out, opts)), closeOut, nil
}
