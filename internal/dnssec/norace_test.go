//go:build !race

package dnssec

const raceDetector = false
