//go:build race

package e2e

// underRace says that every step costs ten times as much.
const underRace = true
