package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/qlog/search"
)

// LogCmd reads the query log from its files; no server need run.
type LogCmd struct {
	Tail   LogTailCmd   `cmd:"" help:"Show the last queries, and with -f those that come."`
	Search LogSearchCmd `cmd:"" help:"Show the queries that the filters mean, the newest first."`
	Top    LogTopCmd    `cmd:"" help:"Count the values of a column."`
	Export LogExportCmd `cmd:"" help:"Write the queries that the filters mean, the oldest first."`
}

// LogSearchCmd shows queries.
type LogSearchCmd struct {
	logFolder
	logFilter
	logOrder
	logFormat
}

// Run prints a table, or rows in another format.
func (c *LogSearchCmd) Run(stdout io.Writer) error {
	values := c.values()
	c.order(values)
	if len(values["limit"]) == 0 && !c.chosen() {
		values["limit"] = []string{"100"} // a screen is for people
	}
	q, err := c.ask(values)
	if err != nil {
		return err
	}
	defer q.stop()
	if c.chosen() {
		return q.export(stdout, c.logFormat)
	}
	n, report, err := q.table(stdout)
	switch {
	case err != nil:
		return err
	case n == 0:
		return q.nothing(stdout, report)
	case report.Next.Rows > 0:
		_, err = fmt.Fprintf(stdout, "\nThere are more: --cursor %s goes on here, --limit 0 shows all.\n", report.Next)
	}
	return err
}

// LogTopCmd counts.
type LogTopCmd struct {
	logFolder
	logFilter
	Column string `arg:"" help:"What to count: a column such as client, name, type, rcode, source, rule or upstream, or suffix for the last two labels of names."`
	Number int    `short:"n" default:"20" help:"Show so many values; 0 is all."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run prints a table of the most frequent values.
func (c *LogTopCmd) Run(stdout io.Writer) error {
	q, err := c.ask(c.values())
	if err != nil {
		return err
	}
	defer q.stop()
	table, report, err := search.Top(q.ctx, q.dir, q.filter, c.Column, c.Number)
	if err != nil {
		return q.hint(err)
	}
	q.skipped(report)
	if c.JSON {
		return printTopJSON(stdout, table)
	}
	if table.Rows == 0 {
		return q.nothing(stdout, report)
	}
	return printTop(stdout, c.Column, table)
}

// LogExportCmd writes rows to a file, or to the standard output.
type LogExportCmd struct {
	logFolder
	logFilter
	logOrder
	logFormat
}

// Run writes JSON lines unless another format is named.
func (c *LogExportCmd) Run(stdout io.Writer) error {
	values := c.values()
	values["order"] = []string{"oldest"}
	c.order(values)
	q, err := c.ask(values)
	if err != nil {
		return err
	}
	defer q.stop()
	return q.export(stdout, c.logFormat)
}

// LogTailCmd shows the last rows.
type LogTailCmd struct {
	logFolder
	logFilter
	Number int  `short:"n" default:"20" help:"Show so many of the last queries."`
	Follow bool `short:"f" help:"Go on with queries as they come, until interrupted."`
	JSON   bool `name:"json" help:"Print JSON, one object a line."`
}

// Run prints the oldest of the last rows first.
func (c *LogTailCmd) Run(stdout io.Writer) error {
	values := c.values()
	values["limit"] = []string{strconv.Itoa(max(1, c.Number))}
	q, err := c.ask(values)
	if err != nil {
		return err
	}
	defer q.stop()
	p, err := newRowPrinter(stdout, c.JSON)
	if err != nil {
		return err
	}
	if c.Follow {
		p.widths = slices.Clone(usual)
	}
	follower, report, err := search.Follow(q.ctx, q.dir, q.filter, p.add)
	if err != nil {
		return q.hint(err)
	}
	q.skipped(report)
	if p.count() == 0 && !c.Follow {
		return q.nothing(stdout, report)
	}
	if err := p.flush(); err != nil || !c.Follow {
		return err
	}
	return q.follow(follower, p)
}

// follow prints rows as they come, until it is interrupted.
func (q *question) follow(follower *search.Follower, p *rowPrinter) error {
	tick := time.NewTicker(pollTails)
	defer tick.Stop()
	for {
		select {
		case <-q.ctx.Done():
			return nil // as it was to be
		case <-tick.C:
		}
		if err := follower.Next(q.ctx, p.add); err != nil && q.ctx.Err() == nil {
			return err
		}
		if err := p.flush(); err != nil {
			return err
		}
	}
}

// pollTails is how often a folder is looked at that is followed: tails grow once a
// second.
const pollTails = 500 * time.Millisecond

// question is a filter on a folder.
type question struct {
	ctx    context.Context // ends with an interrupt
	stop   context.CancelFunc
	dir    string
	filter search.Filter
}

// ask reads the filter and finds the folder. The caller stops the question.
func (f *logFolder) ask(values map[string][]string) (*question, error) {
	dir, err := f.folder()
	if err != nil {
		return nil, err
	}
	filter, err := search.ParseFilter(values, time.Now())
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return &question{ctx, stop, dir, filter}, nil
}

// table prints rows for people.
func (q *question) table(stdout io.Writer) (int, search.Report, error) {
	p, err := newRowPrinter(stdout, false)
	if err != nil {
		return 0, search.Report{}, err
	}
	var failed error
	report, err := search.Search(q.ctx, q.dir, q.filter, func(r *qlog.Row) bool {
		p.add(r)
		if p.count() >= rowsAligned {
			failed = p.flush()
		}
		return failed == nil
	})
	if err != nil {
		return 0, report, q.hint(err)
	}
	q.skipped(report)
	if failed == nil {
		failed = p.flush()
	}
	return p.total, report, failed
}

// export writes rows for programs.
func (q *question) export(stdout io.Writer, format logFormat) (err error) {
	out := stdout
	if format.Parquet != "" {
		f, err := os.OpenFile(format.Parquet, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
		if err != nil {
			return fmt.Errorf("exporting rows: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	n, report, err := search.Export(q.ctx, q.dir, q.filter, format.name(), out)
	q.skipped(report)
	if err != nil {
		return q.hint(err)
	}
	if format.Parquet != "" {
		_, err = fmt.Fprintf(stdout, "%s: %s\n", format.Parquet, counted(n, "row"))
	}
	return err
}

// hint adds to an error what can be done about it.
func (q *question) hint(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no query log; name its folder with --dir, or turn it on with querylog: {dir: %s}", err, q.dir)
	}
	return err
}

// nothing says that no row was found, and why that may be.
func (q *question) nothing(stdout io.Writer, report search.Report) error {
	if report.Files == 0 {
		_, err := fmt.Fprintf(stdout, "no queries: %s has no file of a query log yet\n", q.dir)
		return err
	}
	_, err := fmt.Fprintf(stdout, "no queries that the filter means, in %s of %s; take a condition away\n", counted(report.Files, "file"), q.dir)
	return err
}

// skipped tells on standard error which files could not be read.
func (q *question) skipped(report search.Report) {
	for _, err := range report.Skipped {
		fmt.Fprintln(os.Stderr, "waymark: skipped a file of the query log:", err)
	}
}
