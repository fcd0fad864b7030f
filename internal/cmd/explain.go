package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/miekg/dns"

	"github.com/waymark-dns/waymark/internal/explain"
)

// ExplainCmd runs a question through a running server and shows every step.
type ExplainCmd struct {
	controlFlags
	Name     string `arg:"" help:"What is asked for."`
	Type     string `arg:"" optional:"" default:"A" help:"Type of the records."`
	Client   string `placeholder:"ADDR[:PORT]" help:"Ask as this client; else as this machine."`
	Listener string `placeholder:"URL" help:"Ask at this listener; else at the first one."`
	Dnssec   bool   `help:"Ask for DNSSEC records (DO)."`
	CD       bool   `name:"cd" help:"Ask for data whatever validation says (CD)."`
	JSON     bool   `name:"json" help:"Print one JSON object."`
}

// Help says what it does to the server.
func (c *ExplainCmd) Help() string {
	return "The question is really asked: upstreams see it, and the cache keeps the answer. Limits of clients do not count it."
}

// Run prints the steps and the response.
func (c *ExplainCmd) Run(stdout io.Writer) error {
	asked, err := json.Marshal(explain.Asked{Name: c.Name, Type: c.Type, Client: c.Client, Listener: c.Listener, DO: c.Dnssec, CD: c.CD})
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := c.call(&text, "explain", string(asked)); err != nil {
		return err
	}
	if c.JSON {
		_, err := io.WriteString(stdout, text.String())
		return err
	}
	var a explain.Answered
	if err := json.Unmarshal([]byte(text.String()), &a); err != nil {
		return fmt.Errorf("reading the server's explanation: %w", err)
	}
	return printExplained(stdout, &a)
}

func printExplained(w io.Writer, a *explain.Answered) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, asked by %s at %s\n\n", a.Name, a.Type, a.Client, a.Listener)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, s := range a.Steps {
		part := s.Part
		if s.Branch > 0 {
			part = fmt.Sprintf("%s (branch %d)", part, s.Branch)
		}
		text := s.Text
		if s.Where != "" {
			text += "  [" + s.Where + "]"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", micros(s.At), part, text)
	}
	_ = t.Flush()
	outcome := "nothing is sent"
	if a.Rcode != "" {
		outcome = fmt.Sprintf("%s, %d octets", a.Rcode, a.Size)
	}
	fmt.Fprintf(&b, "\n%s, from %s, after %s", outcome, a.Source, micros(a.Latency))
	if a.Rule != "" {
		fmt.Fprintf(&b, "; decided by %s", a.Rule)
	}
	b.WriteString("\n")
	if len(a.Response) > 0 {
		msg := new(dns.Msg)
		if err := msg.Unpack(a.Response); err != nil {
			return fmt.Errorf("reading the response: %w", err)
		}
		b.WriteString("\n")
		printSections(&b, msg)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func micros(us int64) string { return (time.Duration(us) * time.Microsecond).String() }
