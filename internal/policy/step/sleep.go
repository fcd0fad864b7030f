package step

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/policy"
	"github.com/waymark-dns/waymark/internal/serve"
)

// SleepArgs says how long to wait, in milliseconds.
type SleepArgs struct {
	Duration int `key:"duration"`
}

// Sleep waits before the next rule.
type Sleep struct{ time time.Duration }

// NewSleep makes a step of a configuration of its own.
func NewSleep(args *SleepArgs) (any, error) {
	if args.Duration < 0 {
		return nil, fmt.Errorf("reading duration %d: it is below 0", args.Duration)
	}
	return &Sleep{time.Duration(args.Duration) * time.Millisecond}, nil
}

// ParseSleep makes a step that waits so many milliseconds.
func ParseSleep(args string) (any, error) {
	n, err := strconv.Atoi(strings.TrimSpace(args))
	if err != nil {
		return nil, fmt.Errorf("reading milliseconds: %w", err)
	}
	return &Sleep{time.Duration(n) * time.Millisecond}, nil
}

// Start is part of policy.Starter.
func (a *Sleep) Start(r *serve.Request) policy.Next {
	if r.Pending == a || a.time <= 0 {
		r.Pending = nil
		return policy.Go
	}
	r.Pending = a
	time.AfterFunc(a.time, r.Waker.Wake)
	return policy.Pend
}
