//go:build race

package match

// raceDetector tells tests of allocations to stand aside.
const raceDetector = true
