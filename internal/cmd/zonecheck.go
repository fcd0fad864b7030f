package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone/zonecheck"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// ZoneCheckCmd is `waymark zone check`: it judges a zone file as a server would
// that is to load it.
type ZoneCheckCmd struct {
	File   string    `arg:"" help:"Zone file in presentation format."`
	Origin string    `placeholder:"NAME" help:"Name of the zone. Without it: the owner of the first SOA record if the file tells its origin, else the name of the file without .zone."`
	Root   string    `placeholder:"FOLDER" help:"Folder that $$INCLUDE may not leave, the file's own without it."`
	At     time.Time `placeholder:"TIME" help:"Moment to judge signatures at, as 2026-01-02T15:04:05Z; now without it."`
	JSON   bool      `name:"json" help:"Print the problems as one JSON object."`
}

// zoneCheckResult is what --json prints.
type zoneCheckResult struct {
	File     string             `json:"file"`
	Origin   string             `json:"origin"`
	Errors   int                `json:"errors"`
	Warnings int                `json:"warnings"`
	Problems []zonefile.Problem `json:"problems"`
}

// Run writes a line per problem, "file:line:column: error: text (mend)", and
// one with their numbers. It returns ErrSilent if the zone has errors; warnings
// alone are no reason.
func (c *ZoneCheckCmd) Run(stdout io.Writer) error {
	origin, err := c.zoneCheckOrigin()
	if err != nil {
		return err
	}
	if c.At.IsZero() {
		c.At = time.Now()
	}
	problems, err := zonecheck.Check(c.File, zonefile.Options{Origin: origin, Root: c.Root, Now: c.At.Unix()})
	if err != nil {
		return err
	}
	result := zoneCheckResult{File: c.File, Origin: origin.String(), Problems: problems}
	for _, p := range problems {
		if p.Level == zonefile.Error {
			result.Errors++
		} else {
			result.Warnings++
		}
	}
	if err := result.zoneCheckPrint(stdout, c.JSON); err != nil {
		return fmt.Errorf("writing problems: %w", err)
	}
	if result.Errors > 0 {
		return ErrSilent
	}
	return nil
}

// zoneCheckOrigin is the name of the zone to check.
func (c *ZoneCheckCmd) zoneCheckOrigin() (wire.Name, error) {
	text := c.Origin
	if text == "" {
		origin, err := zonecheck.FindOrigin(c.File, zonefile.Options{Root: c.Root})
		if err != nil || origin != nil {
			return origin, err
		}
		text = strings.TrimSuffix(filepath.Base(c.File), ".zone")
	}
	origin, err := wire.ParseName(text)
	if err != nil {
		return nil, fmt.Errorf("origin %q %w", text, err)
	}
	return origin, nil
}

// zoneCheckPrint writes the result as text or as JSON.
func (r *zoneCheckResult) zoneCheckPrint(w io.Writer, asJSON bool) error {
	if asJSON {
		if r.Problems == nil {
			r.Problems = []zonefile.Problem{}
		}
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for _, p := range r.Problems {
		if _, err := fmt.Fprintln(w, p); err != nil {
			return err
		}
	}
	verdict := "ok"
	if r.Errors > 0 {
		verdict = "not usable"
	}
	_, err := fmt.Fprintf(w, "%s: zone %s is %s: %s, %s\n", r.File, r.Origin, verdict,
		zoneCheckCount(r.Errors, "error"), zoneCheckCount(r.Warnings, "warning"))
	return err
}

// zoneCheckCount is a number with its noun.
func zoneCheckCount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
