package app

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/waymark-dns/waymark/internal/plan"
	"github.com/waymark-dns/waymark/internal/zone"
	"github.com/waymark-dns/waymark/internal/zone/zonefile"
)

// recordText is about how many octets of text a record takes in a master file:
// a first guess of how much room a zone needs.
const recordText = 40

// loadedZone is what became of one zone of a plan.
type loadedZone struct {
	zone  *zone.Zone
	stamp stamp // of the file, taken before it was read
	err   error
}

// stamp tells whether a file has changed.
type stamp struct {
	size int64
	time time.Time
}

func stampOf(file string) (stamp, error) {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Size(), info.ModTime()}, nil
}

// loadZones reads the zones' files, as many at once as there are processors. The
// results stand in the order of the zones.
func loadZones(zones []plan.Zone, log *slog.Logger, now func() time.Duration) []loadedZone {
	results := make([]loadedZone, len(zones))
	procs := runtime.GOMAXPROCS(0)
	workers := max(1, procs/max(1, len(zones)))
	var wg sync.WaitGroup
	places := make(chan struct{}, procs)
	for i, z := range zones {
		places <- struct{}{}
		wg.Go(func() {
			start := now()
			results[i] = loadZone(z, workers)
			if loaded := results[i].zone; loaded != nil {
				log.Info("zone loaded", "zone", z.Name.String(), "serial", loaded.Serial(), "records", loaded.Records(),
					"signed", loaded.Signed(), "took", (now() - start).Round(time.Millisecond))
			}
			<-places
		})
	}
	wg.Wait()
	return results
}

// loadZone reads one zone.
func loadZone(z plan.Zone, workers int) loadedZone {
	var r loadedZone
	if r.stamp, r.err = stampOf(z.File); r.err != nil {
		var path *fs.PathError
		if errors.As(r.err, &path) {
			r.err = fmt.Errorf("reading zone %s: %s: %w", z.Name, z.File, path.Err)
		}
		return r
	}
	b := zone.NewBuilder(z.Name, int(r.stamp.size/recordText))
	r.err = zonefile.Read(z.File, zonefile.Options{Origin: z.Name, Workers: workers}, func(batch []zonefile.Record) error {
		for i := range batch {
			rec := &batch[i]
			if err := b.Add(rec.Owner, rec.Type, rec.TTL, rec.RDATA); err != nil {
				return fmt.Errorf("%s:%d: %w", rec.File, rec.Line, err)
			}
		}
		return nil
	})
	if r.err == nil {
		r.zone, r.err = b.Zone()
	}
	if r.err != nil {
		r.err = fmt.Errorf("reading zone %s: %w", z.Name, r.err)
	}
	return r
}
