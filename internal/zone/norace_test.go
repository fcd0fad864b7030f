//go:build !race

package zone_test

// raceEnabled tells whether the race detector is on: it allocates by itself.
const raceEnabled = false
