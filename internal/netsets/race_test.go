//go:build race

package netsets

// raceDetector tells tests of allocations to stand aside.
const raceDetector = true
