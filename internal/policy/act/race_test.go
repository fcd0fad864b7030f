//go:build race

package act

// raceDetector tells tests of allocations to stand aside.
const raceDetector = true
