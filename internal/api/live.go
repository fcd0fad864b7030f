package api

import (
	"context"
	"time"

	"github.com/waymark-dns/waymark/internal/cache"
	"github.com/waymark-dns/waymark/internal/explain"
	"github.com/waymark-dns/waymark/internal/history"
	"github.com/waymark-dns/waymark/internal/qlog"
	"github.com/waymark-dns/waymark/internal/stats"
	"github.com/waymark-dns/waymark/internal/upstream"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
	"github.com/waymark-dns/waymark/internal/zone/store"
	"github.com/waymark-dns/waymark/internal/zone/xfr"
)

// Live is the running server as the API sees it. Its methods are called for each
// request, by many at once; nil is given where something is not configured.
type Live interface {
	Status() Status
	Ready() error // why it does not answer yet, or not all
	Reload(ctx context.Context) (served string, err error)
	Explain(ctx context.Context, a explain.Asked) (*explain.Answered, error)

	Caches() []NamedCache
	Groups() []NamedGroup
	Sets() []SetView
	ReloadSet(tag string) error

	QueryLog() (log *qlog.Log, dir string)
	Series() (names []string, s *stats.Series)

	Zones() []*zone.Zone // all that are served
	ZoneFile(apex wire.Name) (file string, ok bool)
	Store() *store.Store
	UseZone(z *zone.Zone) error // in place of the version before
	DropZone(apex wire.Name) error
	Primary(addr, key string) (*xfr.Primary, error)

	History() *history.Manager
}

// Status is what is running.
type Status struct {
	Version   string        `json:"version"`
	Uptime    time.Duration `json:"-"`
	Served    string        `json:"served"`
	Listeners []string      `json:"listeners"`
	Reloads   uint64        `json:"reloads"`
}

// NamedCache is a cache, by its tag; the one of level 1 has none.
type NamedCache struct {
	Tag   string
	Cache *cache.Cache
}

// NamedGroup is a group of upstreams.
type NamedGroup struct {
	Name  string
	Group *upstream.Group
}

// SetView is a set as clients see it.
type SetView struct {
	Tag     string   `json:"tag"`
	Type    string   `json:"type"`
	Entries int      `json:"entries"` // rules of its own
	Files   []string `json:"files"`
}
