//go:build !race

package act

const raceDetector = false
