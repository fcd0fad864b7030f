//go:build race

package wire

// raceDetector tells tests of allocations to stand aside: the race detector
// allocates.
const raceDetector = true
