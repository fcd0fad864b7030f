//go:build !race

package addrset

const raceDetector = false
