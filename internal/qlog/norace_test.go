//go:build !race

package qlog

const raceDetector = false
