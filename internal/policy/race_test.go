//go:build race

package policy

// raceDetector tells tests of allocations to stand aside.
const raceDetector = true
