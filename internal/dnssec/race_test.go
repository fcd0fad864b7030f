//go:build race

package dnssec

// raceDetector tells tests of allocations to stand aside.
const raceDetector = true
