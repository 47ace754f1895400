/** The alerts as an object of the Prometheus operator. */

const HEAD = `\
# ops/prometheus/alerts.yaml, for the Prometheus operator. Made by npm run generate: change that file. Give the object the labels
# that your Prometheus selects by ruleSelector.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: petstore
  labels: { app.kubernetes.io/name: petstore }
spec:
`;

/** @param alerts the text of a file of rules */
export function prometheusRule(alerts) {
  return HEAD + alerts.slice(alerts.indexOf('groups:')).replace(/^(?=.)/gm, '  ');
}
