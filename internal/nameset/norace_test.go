//go:build !race

package nameset

const raceDetector = false
