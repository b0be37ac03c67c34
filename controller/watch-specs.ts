import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE } from '../api/names.js';
import { PODS } from '../kube/resources.js';
import { LAUNCHER_INDEXES } from './indexes.js';
import { transformLauncher } from './transforms.js';

/** The launchers, which only the controller watches with these fields. */
export const LAUNCHERS = {
  resource: PODS,
  labelSelector: `${LAUNCHER_LABEL}=${LAUNCHER_LABEL_VALUE}`,
  transform: transformLauncher,
  indexes: LAUNCHER_INDEXES,
};
