//go:build race

package checker

// slower is how much less a test does under the race detector.
const slower = 20
