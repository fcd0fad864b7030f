//go:build race

package listen

// raceDetector tells whether allocations can be counted: the detector adds its
// own.
const raceDetector = true
