#include "validate/checks/checks.h"
