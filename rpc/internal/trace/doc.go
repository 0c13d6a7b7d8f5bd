// Package trace continues W3C traces (Trace Context level 1) from call to call.
package trace
