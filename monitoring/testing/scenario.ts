/** Series by name, and the time at which they are evaluated. */
export interface Scenario {
  readonly series: Readonly<Record<string, string>>;
  readonly at: string;
}

export interface AlertScenario {
  readonly fires: Scenario;
  readonly says: string;
  readonly isQuiet: Scenario;
}
