//go:build !race

package checker

const slower = 1
