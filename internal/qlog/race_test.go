//go:build race

package qlog

// raceDetector tells tests of allocations to stand aside.
const raceDetector = true
