package app

import "github.com/waymark-dns/waymark/internal/stats"

// totalsOf is the counters of sources in the order of seriesNames.
func totalsOf(sources []source) []uint64 {
	var sum stats.Batch
	for i := range sources {
		one := sources[i].sum()
		for c, n := range one {
			sum[c] += n
		}
	}
	other := uint64(0)
	for code := range stats.Queries {
		if code != stats.Rcode(0) && code != stats.Rcode(2) && code != stats.Rcode(3) && code != stats.Rcode(5) {
			other += sum[code]
		}
	}
	return []uint64{
		sum[stats.Queries], sum[stats.Rcode(0)], sum[stats.Rcode(3)], sum[stats.Rcode(2)], sum[stats.Rcode(5)], other,
		sum[stats.FromZone], sum[stats.FromLocal], sum[stats.FromCache], sum[stats.FromStale], sum[stats.FromForward], sum[stats.FromError],
		sum[stats.DroppedShort] + sum[stats.DroppedResponse] + sum[stats.DroppedPolicy],
		sum[stats.DroppedRate] + sum[stats.DroppedRRL] + sum[stats.LimitedRate] + sum[stats.LimitedRRL], sum[stats.Shed],
		sum[stats.BytesIn], sum[stats.BytesOut],
	}
}
