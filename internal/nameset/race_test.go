//go:build race

package nameset

// raceDetector tells whether allocations can be counted: the detector adds its
// own.
const raceDetector = true
