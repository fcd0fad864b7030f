package step

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// Summary logs a line about each response that passes.
type Summary struct {
	text string
	log  *slog.Logger
	now  func() time.Duration
}

// NewSummary makes a step with a title for its lines. now is the clock of Request.At.
func NewSummary(log *slog.Logger, now func() time.Duration, args string) *Summary {
	return &Summary{text: titled(args, "query summary"), log: log, now: now}
}

// titled is what log lines are called.
func titled(args, def string) string {
	if args = strings.TrimSpace(args); args != "" {
		return args
	}
	return def
}

// Do is part of policy.Step.
func (*Summary) Do(*serve.Request) policy.Next { return policy.Go }

// After is part of policy.Finisher.
func (a *Summary) After(r *serve.Request, _ *serve.Frame) {
	ctx := context.Background()
	if !a.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	attrs := []slog.Attr{
		slog.Uint64("uqid", uint64(uniqueID(r))), slog.String("client", r.Client.Addr().String()),
		slog.String("qname", r.Ask.Name.String()), slog.Int("qtype", int(r.Ask.Type)), slog.Int("qclass", int(r.Ask.Class)),
	}
	if r.Out != nil {
		attrs = append(attrs, slog.Int("rcode", int(r.Reply.Rcode())))
	}
	attrs = append(attrs, slog.Duration("elapsed", a.now()-r.At))
	if r.Policy.Failed {
		attrs = append(attrs, slog.String("error", "a rule could not do its work"))
	}
	a.log.LogAttrs(ctx, slog.LevelInfo, a.text, attrs...)
}

// uniqueID is the same on all lines about a query, and hardly ever on those of
// another.
func uniqueID(r *serve.Request) uint32 {
	const spread = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
	mixed := (r.Hash ^ uint64(r.At)) * spread
	mixed = (mixed ^ mixed>>32 ^ uint64(r.Client.Port())<<16 ^ uint64(r.ID)) * spread
	return uint32(mixed >> 32)
}
