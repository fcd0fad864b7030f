package step

import (
	"net/netip"
	"testing"
	"time"

	"github.com/waymark-dns/waymark/internal/serve"
)

// Lines about one query have the same id, those of another have their own.
func TestSummaryID(t *testing.T) {
	r := serve.Request{Client: netip.MustParseAddrPort("192.0.2.1:4096"), At: time.Second}
	other := r
	other.ID++
	later := r
	later.At++
	if id := uniqueID(&r); id != uniqueID(&r) || id == uniqueID(&other) || id == uniqueID(&later) {
		t.Errorf("ids %d, %d, %d", id, uniqueID(&other), uniqueID(&later))
	}
}
