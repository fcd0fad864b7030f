//go:build !race

package netsets

const raceDetector = false
