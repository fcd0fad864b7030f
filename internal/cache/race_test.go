//go:build race

package cache

// raceDetector tells whether this build has the race detector, which allocates.
const raceDetector = true
