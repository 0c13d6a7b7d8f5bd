// Package promql evaluates the alerts of deploy/prometheus with the engine of a current Prometheus,
// where the promtool of distributions is too old: it reads no series of native histograms before
// 2.45. There is no code but the tests. They are a module of their own, so that Prometheus is no
// dependency of agentd.
package promql
