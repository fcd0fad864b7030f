package step

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/policy/match"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// DebugPrint logs the query as it is asked by now, and the response where there is
// one.
type DebugPrint struct {
	text string
	log  *slog.Logger
}

// NewDebugPrint makes a step with a title for its lines.
func NewDebugPrint(log *slog.Logger, args string) *DebugPrint {
	return &DebugPrint{text: titled(args, "debug print"), log: log}
}

// Do is part of policy.Step.
func (a *DebugPrint) Do(r *serve.Request) policy.Next {
	if !a.log.Enabled(context.Background(), slog.LevelInfo) {
		return policy.Go
	}
	a.log.Info(a.text, "query", messageText(r, r.Msg))
	if r.Out != nil {
		a.log.Info(a.text, "response", messageText(r, r.Out))
	}
	return policy.Go
}

// messageText is a message for people: RDATA other than addresses and single names
// in the form of RFC 3597 §5.
func messageText(r *serve.Request, msg []byte) string {
	var b strings.Builder
	flags := uint16(msg[2])<<8 | uint16(msg[3])
	fmt.Fprintf(&b, ";; id %d, flags %04x, code %v\n", r.ID, flags, wire.Rcode(flags&15))
	fmt.Fprintf(&b, ";; question\n%v %s %s\n", r.Ask.Name, classText(r.Ask.Class), wire.TypeString(r.Ask.Type))
	var resp wire.Response
	var rec wire.Record
	if !resp.Read(msg) {
		return b.String()
	}
	var section wire.Section
	for resp.Next(&rec) {
		if rec.Section != section {
			section = rec.Section
			fmt.Fprintf(&b, ";; %s\n", [...]string{wire.Answer: "answer", wire.Authority: "authority", wire.Additional: "additional"}[section])
		}
		var buf [wire.MaxName]byte
		owner, _, _ := wire.ReadName(buf[:0], msg, rec.Start)
		fmt.Fprintf(&b, "%v %d %s %s %s\n", owner, rec.TTL, classText(rec.Class), wire.TypeString(rec.Type), rdataText(msg, &rec))
	}
	return b.String()
}

func rdataText(msg []byte, rec *wire.Record) string {
	if addr, ok := match.Address(msg, rec); ok {
		return addr.String()
	}
	switch rec.Type {
	case wire.TypeCNAME, wire.TypeNS, wire.TypePTR, wire.TypeDNAME:
		if name, _, ok := wire.ReadName(nil, msg, rec.RDATA); ok {
			return name.String()
		}
	}
	rdata, ok := rec.AppendRDATA(nil, msg)
	if !ok {
		rdata = msg[rec.RDATA:rec.End]
	}
	return fmt.Sprintf(`\# %d %s`, len(rdata), hex.EncodeToString(rdata))
}

func classText(class uint16) string {
	switch class {
	case wire.ClassIN:
		return "IN"
	case wire.ClassCH:
		return "CH"
	case wire.ClassANY:
		return "ANY"
	}
	return fmt.Sprintf("CLASS%d", class)
}
