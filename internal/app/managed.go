package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/wire"
	"github.com/waymark-dns/waymark/internal/zone"
	"github.com/waymark-dns/waymark/internal/zone/store"
	"github.com/waymark-dns/waymark/internal/zone/xfr"
)

// managedZones is the zones that are kept in the store. They are guarded by
// Server.mu.
type managedZones struct {
	store *store.Store // nil is none; set before anybody looks
	zones []*zone.Zone // by name
}

// openStore opens the store of p and loads its zones.
func (s *Server) openStore(p *plan.Plan) error {
	if p.ZoneStore.Path == "" {
		return nil
	}
	policy := store.Increment
	if p.ZoneStore.Serial == "date" {
		policy = store.Date
	}
	st, err := store.Open(store.Config{Path: p.ZoneStore.Path, Serial: policy, Now: s.wall})
	if err != nil {
		return err
	}
	s.managed.store = st
	infos, err := st.Zones()
	if err != nil {
		return err
	}
	for _, i := range infos {
		z, err := st.Load(i.Zone)
		if err != nil {
			// The others go on; the names of this one answer SERVFAIL.
			s.log.Error("a managed zone could not be loaded", "zone", i.Zone.String(), "error", err)
			z = zone.Broken(i.Zone)
		}
		s.managed.zones = append(s.managed.zones, z)
	}
	return nil
}

func (s *Server) closeStore() {
	if s.managed.store == nil {
		return
	}
	if err := s.managed.store.Close(); err != nil {
		s.log.Warn("closing the zone store failed", "error", err)
	}
}

// beside is the managed zones that p has no file for.
func (s *Server) beside(p *plan.Plan) (all []*zone.Zone) {
	for _, z := range s.managed.zones {
		if slices.ContainsFunc(p.Zones, func(f plan.Zone) bool { return wire.EqualFold(f.Name, z.Name()) }) {
			s.log.Warn("a zone is in a file and in the zone store: the file is served; take it out of one of them", "zone", z.Name().String())
			continue
		}
		all = append(all, z)
	}
	return all
}

// setZone puts a version of a managed zone in place of the one before, or takes the
// zone away where z is nil, and serves that.
func (s *Server) setZone(apex wire.Name, z *zone.Zone) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	zones := slices.DeleteFunc(slices.Clone(s.managed.zones), func(o *zone.Zone) bool { return wire.EqualFold(o.Name(), apex) })
	if z != nil {
		zones = append(zones, z)
	}
	before := s.managed.zones
	s.managed.zones = zones
	old := s.world.Load()
	w, _, err := s.build(s.ctx, old.plan, old, func(int) bool { return false })
	if err != nil {
		s.managed.zones = before
		return err
	}
	s.use(w)
	return nil
}

// transferTime bounds a transfer that nobody waits for any more.
const transferTime = 2 * time.Hour

// primary is a server to transfer zones from.
func (s *Server) primary(addr, key string) (*xfr.Primary, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		a, err := netip.ParseAddr(strings.Trim(addr, "[]"))
		if err != nil {
			return nil, fmt.Errorf("primary %q: write an IP address, with or without a port", addr)
		}
		to = netip.AddrPortFrom(a, 53)
	}
	p := &xfr.Primary{Addr: to.String(), Now: s.wall, Deadline: deadline, Limits: xfr.Limits{Total: transferTime}}
	if key == "" {
		return p, nil
	}
	for _, k := range s.world.Load().plan.Keys {
		if !strings.EqualFold(strings.TrimSuffix(k.Name, "."), strings.TrimSuffix(key, ".")) {
			continue
		}
		name, err := wire.ParseName(k.Name)
		if err != nil {
			return nil, err
		}
		secret, err := base64.StdEncoding.DecodeString(k.Secret)
		if err != nil {
			return nil, errors.New("the secret of the key is not base64")
		}
		p.Key, err = wire.NewTSIGKey(name, k.Algorithm, secret)
		return p, err
	}
	return nil, fmt.Errorf("no key %q under keys: in the configuration", key)
}

// seriesNames is what the time series tell.
var seriesNames = []string{
	"queries", "noerror", "nxdomain", "servfail", "refused", "other",
	"zone", "local", "cache", "stale", "forward", "error", "dropped", "limited", "shed", "bytes_in", "bytes_out",
}

// totals is the counters of all listeners in the order of seriesNames.
func (s *Server) totals() []uint64 { return totalsOf(s.workers.all()) }

// seriesLoop notes once a second how far the counters are.
func (s *Server) seriesLoop(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.series.Add(s.wall().Unix(), s.totals())
		}
	}
}
