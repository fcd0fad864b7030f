package app

import (
	"context"
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
	zone  *zone.Zone // nil where err is set
	files []stamp    // what was read, as it was before
	err   error
}

// stamp tells whether a file has changed.
type stamp struct {
	file string
	size int64
	time time.Time
}

// stampOf is the present stamp of a file; one that cannot be looked at has size
// and time zero.
func stampOf(file string) (stamp, error) {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{file: file}, err
	}
	return stamp{file, info.Size(), info.ModTime()}, nil
}

// loadZones reads the zones that want tells, as many at once as there are
// processors; the results have the indices of zones. When ctx ends, what is not
// read by then fails.
func loadZones(ctx context.Context, zones []plan.Zone, want func(i int) bool, log *slog.Logger, now func() time.Duration) []loadedZone {
	results := make([]loadedZone, len(zones))
	procs := runtime.GOMAXPROCS(0)
	workers := max(1, procs/max(1, len(zones)))
	var wg sync.WaitGroup
	places := make(chan struct{}, procs)
	for i, z := range zones {
		if !want(i) {
			continue
		}
		places <- struct{}{}
		wg.Go(func() {
			start := now()
			results[i] = loadZone(ctx, z, workers)
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
func loadZone(ctx context.Context, z plan.Zone, workers int) loadedZone {
	var r loadedZone
	first, err := stampOf(z.File)
	r.files = []stamp{first}
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		r.err = fmt.Errorf("reading zone %s: %s: %w", z.Name, z.File, err)
		return r
	}
	b := zone.NewBuilder(z.Name, int(first.size/recordText))
	r.err = zonefile.Read(z.File, zonefile.Options{Origin: z.Name, Workers: workers}, func(batch []zonefile.Record) error {
		for i := range batch {
			rec := &batch[i]
			r.include(rec.File)
			if err := b.Add(rec.Owner, rec.Type, rec.TTL, rec.RDATA); err != nil {
				return fmt.Errorf("%s:%d: %w", rec.File, rec.Line, err)
			}
		}
		return ctx.Err()
	})
	if r.err == nil {
		r.zone, r.err = b.Zone()
	}
	if r.err != nil {
		r.err = fmt.Errorf("reading zone %s: %w", z.Name, r.err)
	}
	return r
}

// include notes a file that the zone's own file includes.
func (r *loadedZone) include(file string) {
	for i := range r.files {
		if r.files[len(r.files)-1-i].file == file {
			return
		}
	}
	s, _ := stampOf(file) // it was just read; if it is gone, it will count as changed
	r.files = append(r.files, s)
}
