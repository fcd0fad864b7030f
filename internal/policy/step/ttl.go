package step

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
	"github.com/waymark-dns/waymark/internal/wire"
)

// TTL changes the TTLs of a response, in seconds: all to Fixed, or else those
// below Min and above Max to these. What is 0 changes nothing.
type TTL struct{ Fixed, Min, Max uint32 }

// makeTTL reads "fixed" or "min-max".
// NewTTL reads seconds, or the least and the most with a dash between.
func NewTTL(args string) (any, error) {
	var a TTL
	var err error
	low, high, isRange := strings.Cut(strings.TrimSpace(args), "-")
	if !isRange {
		a.Fixed, err = seconds(low)
		return a, err
	}
	if a.Min, err = seconds(low); err == nil {
		a.Max, err = seconds(high)
	}
	return a, err
}

func seconds(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("reading TTL: %w", err)
	}
	return uint32(n), nil
}

// Do is part of policy.Step.
func (a TTL) Do(r *serve.Request) policy.Next {
	var resp wire.Response
	if r.Out == nil || !resp.Read(r.Out) {
		return policy.Go
	}
	var rec wire.Record
	for resp.Next(&rec) {
		setTTL(r.Out, &rec, a.of(rec.TTL)) // there is no OPT record yet
	}
	return policy.Go
}

func (a TTL) of(ttl uint32) uint32 {
	if a.Fixed > 0 {
		return a.Fixed
	}
	ttl = max(ttl, a.Min)
	if a.Max > 0 {
		ttl = min(ttl, a.Max)
	}
	return ttl
}

// setTTL changes the TTL of a record of msg.
func setTTL(msg []byte, rec *wire.Record, ttl uint32) {
	binary.BigEndian.PutUint32(msg[rec.RDATA-6:], ttl)
}
